/* DLPack's table of C functions, on the type. */
#pragma once

int dlpack_exchange_setup(void); /* after type_setup */
