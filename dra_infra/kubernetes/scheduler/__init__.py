"""What the scheduler does with a pod: which nodes it passes, and which devices its claims get there."""
