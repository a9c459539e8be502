"""From a back end's inventory to slices on the API server, kept there whoever changes them."""
