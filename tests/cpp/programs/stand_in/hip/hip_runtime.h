// In place of HIP's header, of which hamr_config.h uses nothing.
