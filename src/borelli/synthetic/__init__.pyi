from borelli.synthetic.recordings import Synthetic as Synthetic
from borelli.synthetic.recordings import synthetic_recording as synthetic_recording
