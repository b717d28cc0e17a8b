#!/bin/sh
# write_text.sh [SENTENCES]: prints a text of so many short sentences (6,000 if not given), the same ones each time. A small
# model learns their grammar in minutes, so that it shows in what it writes.
exec awk -v sentences="${1:-6000}" '
  # The generator of Park and Miller (1988): all products are exact in a double.
  function choose(words, count) { state = (state * 16807) % 2147483647; return words[int(state / 2147483647 * count) + 1] }
  BEGIN {
    state = 2024
    kinds = split("old,young,small,tall,quiet,clever,tired,friendly,hungry,careful,famous,lonely,cheerful,stubborn,gentle,curious", kind, ",")
    people = split("baker,farmer,teacher,sister,brother,king,queen,neighbour,fisherman,doctor,painter,gardener,carpenter,student,traveller,shepherd,blacksmith,musician,grandmother,cat,dog,horse,sparrow,rabbit,hedgehog,squirrel,clockmaker,lighthouse keeper,acrobat", who, ",")
    deeds = split("finds,likes,paints,remembers,sees,sells,carries,repairs,borrows,forgets,cleans,describes,hides,admires,measures,collects,breaks,returns,watches,follows,understands,draws,exchanges,decorates,imagines,polishes", does, ",")
    looks = split("red,wooden,silver,broken,heavy,golden,narrow,empty,yellow,strange,ancient,little,expensive,beautiful,frozen,purple", look, ",")
    things = split("apple,boat,letter,garden,ring,bread,stone,lantern,blanket,bridge,window,mirror,basket,violin,kettle,umbrella,ladder,feather,candle,chimney,pumpkin,hammer,telescope,carpet,bottle,cupboard,compass,wheelbarrow,trumpet,bracelet,envelope,snowball", what, ",")
    places = split("near the river,in the village,behind the house,on the hill,under a tree,at the market,beside the church,in the kitchen,between two mountains,along the street,inside the castle,below the waterfall,across the valley,outside the library,over the meadow", where, ",")
    times = split("in the morning,after dinner,every winter,before dawn,when it rains,at night,on Sundays,during the summer,without a reason,twice a week,since October,until midnight,for a hundred years,together with a friend", when, ",")
    for (i = 0; i < sentences; ++i) {
      text = "The " choose(kind, kinds) " " choose(who, people) " " choose(does, deeds) " the " choose(look, looks) " " choose(what, things)
      state = (state * 16807) % 2147483647
      if (state % 3 != 0) text = text " " choose(where, places)
      if (state % 2 == 0) text = text " " choose(when, times)
      if (state % 5 == 0) text = text " in the year " 1000 + state % 1000
      print text "."
    }
  }'
