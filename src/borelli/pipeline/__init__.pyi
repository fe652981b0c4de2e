from borelli.export.uncertainty_files import AnalysisUncertainty as AnalysisUncertainty
from borelli.pipeline.analysis_settings import AnalysisSettings as AnalysisSettings
from borelli.pipeline.analyze import Analysis as Analysis
