"""Human movement as physics: recordings, models, inverse kinematics and dynamics, simulation and control.

    import borelli as bo

    recording = bo.clean(bo.read_recording("walk.c3d"))
    fit = bo.fit_model(bo.human(mass=72.6, height=1.78), recording)
    motion = bo.inverse_kinematics(fit.model, recording)
    energy = bo.compute_energy(bo.inverse_dynamics(motion, forces="plates"))
    bo.write_report(energy, "walk.html")

This package has the functions of every stage, their results and the errors. More is in the subpackages `model`,
`muscles`, `recording`, `physics`, `dynamics`, `control`, `optimal`, `analysis`, `pipeline`, `scenes`, `synthetic` and
`view`. Names are imported on first use, so that `import borelli` is quick; `__init__.pyi` lists them.
"""

from borelli.files.lazy_names import lazy_names

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_names(__name__)
__all__ += ["__version__"]
