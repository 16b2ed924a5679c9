"""What a report is made of: the studies, the sentences, tables and charts that tell of them, and the page that holds them."""
