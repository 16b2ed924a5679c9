"""What the jobs of a log received over time, and what the exact allocation of a notion would have given them."""
