"""The impulse step (Weinstein, Guendelman and Fedkiw 2008): hard and controlled joints, collisions."""
