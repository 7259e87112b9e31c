//! Whole labs over real sockets.
