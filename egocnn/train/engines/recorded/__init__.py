"""R networks and the graphs of each -> R trained networks, computed as one stack."""
