"""Muscles that move a simulated body: impulses along lines of action in place of joint torques."""
