"""Force plates: loads assigned to feet, and gait events."""
