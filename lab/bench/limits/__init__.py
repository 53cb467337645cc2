"""How far it goes: very large graphs, too little memory, processes that are killed -> records in results/."""
