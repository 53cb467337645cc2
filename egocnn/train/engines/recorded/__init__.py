"""Many small trainings as one: R networks and the graphs of each -> R trained networks and their histories.

Small graphs leave a GPU waiting for the next launch. Here the folds and restarts of a cross-validation, or the members
of an ensemble, are the replicas of one network whose every tensor has a leading axis R. The result of a replica is
that of training it alone. On a GPU a single network is trained as a stack of one.
"""
