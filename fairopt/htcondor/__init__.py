"""HTCondor: instances from its ads and group quotas, histories from `condor_history`."""
