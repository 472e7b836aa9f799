"""padding"""
