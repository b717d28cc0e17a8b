#!/bin/sh
# write_text.sh [SENTENCES]: prints a text of so many short sentences (6,000 if not given), the same ones each time. A small
# model learns their grammar in a minute, so that it shows in what it writes.
exec awk -v sentences="${1:-6000}" '
  # The generator of Park and Miller (1988): all products are exact in a double.
  function choose(words, count) { state = (state * 16807) % 2147483647; return words[int(state / 2147483647 * count) + 1] }
  BEGIN {
    state = 2024
    people = split("the old baker,a small dog,the teacher,my sister,the black cat,a tall farmer,the young king,our neighbour", who, ",")
    deeds = split("finds,likes,paints,remembers,sees,sells,carries,looks for", does, ",")
    things = split("a red apple,the wooden boat,an old letter,the garden,a silver ring,the morning bread,two white stones", what, ",")
    places = split("near the river,in the village,behind the house,on the hill,under a tree,at the market", where, ",")
    times = split("in the morning,after dinner,every winter,before dawn,when it rains,at night", when, ",")
    for (i = 0; i < sentences; ++i) {
      text = choose(who, people) " " choose(does, deeds) " " choose(what, things)
      state = (state * 16807) % 2147483647
      if (state % 3 != 0) text = text " " choose(where, places)
      if (state % 2 == 0) text = text " " choose(when, times)
      print toupper(substr(text, 1, 1)) substr(text, 2) "."
    }
  }'
