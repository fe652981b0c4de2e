from borelli.scenes.gallery import GALLERY as GALLERY
from borelli.scenes.gallery import gallery_scene as gallery_scene
from borelli.scenes.scene import Scene as Scene
from borelli.scenes.scene import run_scene as run_scene
from borelli.scenes.scene import validate_scene as validate_scene
from borelli.scenes.scene_files import read_scene as read_scene
from borelli.scenes.scene_files import write_scene as write_scene
