"""Equilibria of servers, PS-DSF: servers act in turn until none can improve, and the end is made exact."""
