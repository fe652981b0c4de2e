"""Track a reaching motion with a simulated body, push its hand, and measure the recovery."""

import borelli as bo
from borelli.control import Push
from borelli.synthetic import synthetic_recording

recording = bo.clean(synthetic_recording("reach").recording)
fit = bo.fit_model(bo.human(mass=68.0, height=1.72, sex="female"), recording)
motion = bo.inverse_kinematics(fit.model, recording)
animation = bo.animate(motion, [Push("hand_r", (0.0, 80.0, 0.0), start=0.4, duration=0.1)])

error = animation.data["body_tracking_error"]
print(f"strayed {1e3 * float(error.max()):.0f} mm; back at {animation.data.attrs['recovered_at_s']:.2f} s")
bo.strobe(animation, "push.png", count=5, overwrite=True)
