"""The services that the kubelet calls: registration, preparing and releasing claims, and the health of devices."""
