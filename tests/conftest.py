from hypothesis import settings

# The machines that run this are shared: a slow example is no failure, and no two runs differ.
settings.register_profile("project", deadline=None, derandomize=True)
settings.load_profile("project")
