"""Programs as arrays: pairs of users and servers, blocks of servers, Newton systems, on any array library."""
