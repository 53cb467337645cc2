"""A model and shards, files of very many rows -> what it says of every row, one Parquet file per shard."""
