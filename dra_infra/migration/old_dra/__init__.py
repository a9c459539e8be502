"""Old DRA, of classic controllers and of the versions before v1, as objects of resource.k8s.io/v1."""
