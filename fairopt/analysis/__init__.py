"""What an allocation is like: measures, properties, regret, comparison, explanation, the frontier, and worst cases."""
