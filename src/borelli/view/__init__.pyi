from borelli.view.browser_viewer import BrowserViewer as BrowserViewer
from borelli.view.browser_viewer import show as show
from borelli.view.picture import strobe as strobe
from borelli.view.plots import plot as plot
from borelli.view.render import Camera as Camera
from borelli.view.video import write_frames as write_frames
