"""The image of the node plugin, made without a registry: ``make image``."""
