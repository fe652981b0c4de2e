"""Planar jumper of Park, Fussell, Pandy and Browne (1992): four segments on the toe, joint torques or eight muscles."""
