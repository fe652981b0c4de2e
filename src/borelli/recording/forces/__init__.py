"""Force plates: which load belongs to which foot, and the gait events they show."""
