"""Tables and sentences, described once (`table`, `blocks`) and rendered everywhere: terminal, HTML, notebooks, Markdown and LaTeX."""
