"""control_flow"""
