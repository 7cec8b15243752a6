"""What runs inside the sandbox: standard library only, for the sandbox has nothing else.

The modules travel into it as text, see `respo.rewards.code.start`.
"""
