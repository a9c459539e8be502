"""What the plugin asks of the API server: claims, what it knows of them, and whether their devices are bound."""
