"""An interior point for leximins, equal levels, trees of queues and totals of many users and servers, on their structure."""
