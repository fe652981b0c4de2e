"""Collision detection: contact points between shapes."""
