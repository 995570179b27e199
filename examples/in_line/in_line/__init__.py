"""An algorithm and a privacy model of somebody else: Portcullis knows them by the entry points of this package."""
