"""An API server as a client sees it: kubeconfig, credentials, requests within bounds of time and size, and kinds."""
