"""From expressions and statements of te to ops of tir, arith and math."""
