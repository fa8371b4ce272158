"""Knows: whether a result is good; the gate and the judges it is made of."""
