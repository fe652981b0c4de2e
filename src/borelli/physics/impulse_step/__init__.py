"""The impulse step (seed 000): hard joints, controlled joints that end each step where they should, collisions."""
