"""Publishing of a back end's inventory as slices on the API server, kept there whoever changes them."""
