# The modules, lowest first, and what each may include: itself and the modules that are named here, nothing else. A module
# is a folder of kintsugi/; the folders in it that are modules too are not part of it.
# `cmake/check_includes.cmake` refuses any other include before the build starts. `app/` is above all of them.
set(KINTSUGI_MODULES
  base probe launch device tensor mesh config jobs comm graph ops kernels kernels/reference kernels/cpu kernels/gpu
  kernels/host models plan program bind profile lower compile simulate search report
  run text data corpus images samples checkpoint exchange evaluate tasks serve train calibrate sweep)

set(KINTSUGI_MAY_base)
set(KINTSUGI_MAY_probe base)
set(KINTSUGI_MAY_launch base)
set(KINTSUGI_MAY_device base)
set(KINTSUGI_MAY_tensor base)
set(KINTSUGI_MAY_mesh base tensor)
set(KINTSUGI_MAY_config base tensor)
set(KINTSUGI_MAY_jobs base launch config)
set(KINTSUGI_MAY_comm base launch device tensor)
set(KINTSUGI_MAY_graph base tensor)
set(KINTSUGI_MAY_ops base tensor graph)
set(KINTSUGI_MAY_kernels base device tensor)
set(KINTSUGI_MAY_kernels/reference base tensor kernels)
set(KINTSUGI_MAY_kernels/cpu base tensor kernels kernels/reference)
set(KINTSUGI_MAY_kernels/gpu base launch device tensor kernels kernels/reference)
set(KINTSUGI_MAY_kernels/host base tensor kernels kernels/cpu)
set(KINTSUGI_MAY_models base tensor config graph ops)
set(KINTSUGI_MAY_plan base tensor mesh config graph ops)
set(KINTSUGI_MAY_program base tensor mesh)
set(KINTSUGI_MAY_bind base device tensor mesh kernels program)
set(KINTSUGI_MAY_profile base tensor mesh program)
set(KINTSUGI_MAY_lower base device tensor mesh config graph ops kernels plan program bind)
set(KINTSUGI_MAY_compile base launch device tensor mesh config graph ops kernels kernels/reference kernels/cpu kernels/gpu models plan program lower)
set(KINTSUGI_MAY_simulate base tensor mesh config plan program)
set(KINTSUGI_MAY_search base device tensor mesh config graph ops kernels models plan program lower compile simulate)
set(KINTSUGI_MAY_report base tensor mesh program profile simulate)
set(KINTSUGI_MAY_run base launch device tensor mesh comm kernels kernels/host program bind profile)
set(KINTSUGI_MAY_text base)
set(KINTSUGI_MAY_data base tensor text)
set(KINTSUGI_MAY_corpus base tensor config text data report)
set(KINTSUGI_MAY_images base tensor data)
set(KINTSUGI_MAY_samples base tensor config text data images)
set(KINTSUGI_MAY_checkpoint base device tensor mesh comm kernels program run)
set(KINTSUGI_MAY_exchange base device tensor mesh config comm graph ops kernels kernels/reference kernels/cpu kernels/gpu
  kernels/host models program run text checkpoint)
set(KINTSUGI_MAY_evaluate base device tensor mesh config comm graph ops kernels kernels/host kernels/reference kernels/cpu kernels/gpu
  kernels/host models plan program lower compile run text data images samples checkpoint exchange)
set(KINTSUGI_MAY_tasks base device tensor mesh config comm graph ops kernels kernels/reference kernels/cpu kernels/gpu
  kernels/host models plan program lower compile run text data images samples checkpoint exchange evaluate)
set(KINTSUGI_MAY_serve base device tensor mesh config comm graph ops kernels kernels/reference kernels/cpu kernels/gpu
  kernels/host models plan program lower compile run text data images samples checkpoint exchange evaluate)
set(KINTSUGI_MAY_train base launch device tensor mesh config comm graph ops kernels kernels/host kernels/reference kernels/cpu kernels/gpu
  kernels/host models plan program profile lower compile report run text data images samples checkpoint exchange evaluate tasks)
set(KINTSUGI_MAY_calibrate base device tensor mesh config comm graph ops kernels kernels/host kernels/reference kernels/cpu kernels/gpu
  kernels/host models plan program profile lower compile simulate report run text data images samples checkpoint exchange evaluate train)
set(KINTSUGI_MAY_sweep base launch config jobs report)

# What tests of any module above these may include as well: the sets of kernels.
set(KINTSUGI_TESTS_MAY kernels/reference kernels/cpu kernels/gpu)
