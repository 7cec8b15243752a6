"""Training on this machine: one process, one thread, one small policy.

``python -m respo.training.local`` trains a run, ``python -m respo.training.local.warm_start`` makes
the initial weights that the runs of a model share.
"""
