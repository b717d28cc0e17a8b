# The modules, lowest first, and what each may include: itself and the modules that are named here, nothing else.
# `cmake/check_includes.cmake` refuses any other include before anything is compiled. `app/` is above all of them.
set(KINTSUGI_MODULES
  base device tensor mesh config comm graph ops kernels models plan program profile lower build simulate search report
  run
  text data checkpoint exchange evaluate train launch)

set(KINTSUGI_MAY_base)
set(KINTSUGI_MAY_device base)
set(KINTSUGI_MAY_tensor base)
set(KINTSUGI_MAY_mesh base tensor)
set(KINTSUGI_MAY_config base tensor)
set(KINTSUGI_MAY_comm base device tensor)
set(KINTSUGI_MAY_graph base tensor)
set(KINTSUGI_MAY_ops base tensor graph)
set(KINTSUGI_MAY_kernels base device tensor)
set(KINTSUGI_MAY_models base tensor config graph ops)
set(KINTSUGI_MAY_plan base tensor mesh config graph ops)
set(KINTSUGI_MAY_program base tensor mesh)
set(KINTSUGI_MAY_profile base tensor mesh program)
set(KINTSUGI_MAY_lower base device tensor mesh config graph ops kernels plan program)
set(KINTSUGI_MAY_build base device tensor mesh config graph ops kernels models plan program lower)
set(KINTSUGI_MAY_simulate base tensor mesh config plan program)
set(KINTSUGI_MAY_search base device tensor mesh config graph ops kernels models plan program lower build simulate)
set(KINTSUGI_MAY_report base tensor mesh program profile simulate)
set(KINTSUGI_MAY_run base device tensor mesh comm kernels program profile)
set(KINTSUGI_MAY_text base)
set(KINTSUGI_MAY_data base tensor text)
set(KINTSUGI_MAY_checkpoint base device tensor mesh comm kernels program run)
set(KINTSUGI_MAY_exchange base device tensor mesh config comm graph ops kernels models program run text checkpoint)
set(KINTSUGI_MAY_evaluate base device tensor mesh config comm graph ops kernels models plan program lower build run text data checkpoint exchange)
set(KINTSUGI_MAY_train base device tensor mesh config comm graph ops kernels models plan program profile lower build report run text data checkpoint exchange evaluate)
set(KINTSUGI_MAY_launch base tensor mesh config comm plan)
