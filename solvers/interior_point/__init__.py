"""An interior point for leximins, equal levels and totals of many users and servers, on their structure."""
