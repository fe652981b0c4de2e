"""Published experiments reproduced on motions with known ground truth, with pass criteria."""
