"""What flows through the house: tasks, turns, episodes, entries, and the draws that make them repeatable."""
