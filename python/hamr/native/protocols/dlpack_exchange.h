/* DLPack's table of C functions, on the type. */
#ifndef HAMR_PROTOCOLS_DLPACK_EXCHANGE_H
#define HAMR_PROTOCOLS_DLPACK_EXCHANGE_H

int dlpack_exchange_setup(void); /* after type_setup */

#endif
