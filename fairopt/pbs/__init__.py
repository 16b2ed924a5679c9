"""PBS Professional and OpenPBS: instances from their JSON, histories from accounting records."""
