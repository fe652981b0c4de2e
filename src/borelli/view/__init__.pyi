from borelli.view.browser_viewer import BrowserViewer as BrowserViewer
from borelli.view.browser_viewer import show as show
from borelli.view.muscle_plots import plot_moment_arms as plot_moment_arms
from borelli.view.picture import strobe as strobe
from borelli.view.plots import plot as plot
from borelli.view.render import Camera as Camera
from borelli.view.video import write_frames as write_frames
