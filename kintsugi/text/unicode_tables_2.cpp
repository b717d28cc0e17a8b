// Written by bench/tokenizers/unicode_tables.py: sets of characters of Unicode 16.0 by name.
#include "kintsugi/text/unicode_tables.h"

// clang-format off
namespace kintsugi::text {

const UnicodeSet kUnicodeSets2[] = {
    {"changeswhentitlecased cwt ",
     "7l+Ekj|)lqljljljljljljljljljljljljljljljljljljljljljljljljljljljljmjljljljljljljlkljljljljljljljljljljljljlj"
     "ljljljljljljljljljljmjljllmjljmjnjpjmjnlmjmjljljmjojmjnjljmjnjljojlklkljljljljljljljljlkljljljljljljljljlllj"
     "ljnjljljljljljljljljljljljljljljljljljljljnjljljljljljljljljsjmkljojljljljlolkljlknklmlnmjlkmjrjmjlknopjukWm"
     "j~jljnjnl$j.>lknlljljljljljljljljljljljlnljmjmj8k2kljljljljljljljljljljljljljljljljljtjljljljljljljljljljljl"
     "jljljljljljljljljljljljljljljljmjljljljljljlkljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljl"
     "jljljljljljljljljljljljljljljljlj5k^7bkoJ3krljEojnj!jPljljljljljljljljljljljljljljljljljljljljljljljljljljlj"
     "ljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljlppjljljljljlj"
     "ljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljlrsouqsqsouqsqswmqsqsqsnlk"
     "qjnllksmmksqullkSqj>yojY#+I{2kljnkljljljqjmjujljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljlj"
     "ljljljljljljljljljljljljljljljljljljsjljojw]ljpjaDyjljljljljljljljljljljljljljljljljljljljljljlj%jljljljljlj"
     "ljljljljljljljlj1mjljljljljljljnjljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljujljmjljljljljo"
     "jojlkmjljljljljljljljljljvjljljljljljljljojljmjnjpjljlj-j6$j/Ykd0tpwnV)+F-_2m@Lmtlxlplkf_5kal&eIk;Jat;UMy="},
    {"changeswhenuppercased cwu ",
     "7l+Ekj|)lqljljljljljljljljljljljljljljljljljljljljljljljljljljljljmjljljljljljljlkljljljljljljljljljljljljlj"
     "ljljljljljljljljljljmjljllmjljmjnjpjmjnlmjmjljljmjojmjnjljmjnjljpklklkljljljljljljljlkljljljljljljljljlklklj"
     "njljljljljljljljljljljljljljljljljljljljnjljljljljljljljljsjmkljojljljljlolkljlknklmlnmjlkmjrjmjlknopjukWmj~"
     "jljnjnl$j.>lknlljljljljljljljljljljljlnljmjmj8k2kljljljljljljljljljljljljljljljljljtjljljljljljljljljljljljl"
     "jljljljljljljljljljljljljljljmjljljljljljlkljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljl"
     "jljljljljljljljljljljljljljljlj5k^9Jk|mlfzoJ3krljEojnj!jPljljljljljljljljljljljljljljljljljljljljljljljljljl"
     "jljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljlppjljljljl"
     "jljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljlrsouqsqsouqsqswm7klkoj"
     "ljnllkojnmmksqullkojNqj>yojY#+I{2kljnkljljljqjmjujljljljljljljljljljljljljljljljljljljljljljljljljljljljljlj"
     "ljljljljljljljljljljljljljljljljljljljljsjljojw]ljpjaDyjljljljljljljljljljljljljljljljljljljljljljlj%jljljlj"
     "ljljljljljljljljljlj1mjljljljljljljnjljljljljljljljljljljljljljljljljljljljljljljljljljljljljljljujljmjljljl"
     "jljojojlkmjljljljljljljljljljvjljljljljljljljojljmjnjpjljlj-j6$j/Ykd0tpwnV)+F-_2m@Lmtlxlplkf_5kal&eIk;Jat;UM"
     "y="},
    {"cher cherokee ", "TLlekmoQ6$Yk"},
    {"chorasmian chrs ", "RF>-"},
    {"closepunctuation pe ",
     "{j7kj<jdckjljg{ji9kjBkjzj5xjlj;j7*jljljljljljljakj=jljljljlj0sjljljljljljljljljljljKkjlj>jR)jljljlj0kjljljlj"
     "Osjljljljljnjljljljmkff+jcnj:jljljljljljljljnj#jljljamj7kj<jmjmj"},
    {"cn unassigned ",
     "X$kqmrjlj&jcrj_k6kknjBkq.mqt1pjGkkClwFkk5kkzj/kljvn<jmnDojskmk)jrjlloktkmkoqlmmjpk,knjqmmk)jrjmjmjmkljpmmknl"
     "lpojlp#snjtjnj)jrjmjpkujnjnklxokwprjnjskmk)jrjmjpktkmknpnmmjpk$smjqlnjolmjljmlmlnlwmplnjoklolw(nxjnj*j!ktjnj"
     "opmjnklkokup)jnj*jujpktjnjopmomjokujnuxjnj7kjnjqm!k-jnj$l+jtjlkrllmqjljsouknuEkm:[mjljpj+jlj*kpjljrjuko;Skj]"
     "m`j]jzjx[JnjlnlkIrjokrjljok|jok>jokrjljokzjDkjokNkk=l-ogkkqkexl0lp)r+r&uxjnjmu5lkuouo-o0lp~nQks<jwmwmll}kpt0"
     "km-ovlIkkLkj:kvouoyk<3kXkjWmqGklzlIkn~kvq~neukqk_kqksjljljlj<k9kjzjykqj%knjtjCljwk.jxl>x>x6mmbx&v%D`k=jZqn1k"
     "jlnlkCkpmw+rrjrjrjrjrjrjrjrjbl=-j0luZn+akjgkkEln~j5ljgkr4kjiKxlBkrYq$5nqRnkmjljs%FkluoCkqQkqwoRlt;lYkjvm>jBk"
     "rykukEl)/sqkqkqrrjrjGkmblkuoDNou*m5kmeFnkHl]rupn-jpjljmjmjalyfskAkpl;}o7kj%jompj1mkljBnlqkqkqknlrjrspkwj-j%j"
     "mjzky=Ylnnm1klikjxll1k2kdl:l5kx/m]r;n~n;j^my{Omkuo]m]m{q8ktwjzjrjmjvjzjrjml8kugpr)ss)qj}jtNkqklj0kjmllk*jSkq"
     "t2k%jmn>l.nlIkCkm&k6kjmnsjnj:knmuptpKk;`mwrAkl:k.n-pourYkTk9k7kv7kp2kquo_l:qmRn<j}jnkmyn9k0kq}&-]/$*rYkm]rOk"
     "slk,puo9kj$q`r7lj&t$j3kGkrjljojzjvoFknuoojskmk)jrjmjpjukmknklolnrkrlptujlklj_jujlkljojujmqm.3ljp/SkquUmAkk_="
     "Pktuox#Ekouo&-.kzm*4nGk9ldkusklksjmj;jmkwruOksk2kkv,SkqdkvTkpu1n@wuotj1kjys:l=k)jyRkrjmj0klljmjtquoqjmj^jmjq"
     "pudp,p#j|l:dklx6kvO%BlMljptHnPDkAlvV*sahkniv0HmEkN^Uvp<jumbkjuo;kqsQksujrj(n%QsEkHn2lAlVkmDkp#IkptmwH1mqO-`u"
     "OInojrjmjMpxl.nklwoqbrC6kIlnxltpuksGgkQooWsUk2kk*rRlEkMos`kFn%QkVl&u&uhkr,ilfkjRkjmklkmkojwjljrjLkjoksjrj/jo"
     "jpjllrjQqkNpkSyxpjzN*<oqWnrj#krjmjpnIk<lLl1klykumm4q<zEknlDt}Xn~mlTtrjojmjzjInk!`WkmummJ!OkUkHkDnoj.jmjlklju"
     "jojljlolmljljljnjmjlkljljljljljmjlkojrjojojljuj#nnjpj#6kmio0kmBluzkzjzj^semAk:v0kmtpmwqIme&m#lxlUlm6lowmlxwm"
     "Ckquo{q;kwmmGkQquykxlunCkpzkvotpDmjDld(G4&;F2lohnk3clw4VmxcwZ9k3vK=ZJln83leLaql/7lblGoE5<FG<kFG<k"},
    {"co privateuse ", "EE.97mbh3tDG<mDG<"},
    {"combiningmark m mark ",
     "3!Ll6ppdo~ljlklkljSkt4k%!jClpmomklm[j;,2ltEkrtj+mlrllln~lFkr})l<Akll!lpuk:lCkjlpmkmltjuk-jmlCkjlnokmlnj;knjv"
     "lCkjlqllll&k)ollCkjlpmkmlrluk;jFknnllmtj{nBkjlplllmrkvk:lCkjlplllmrkvkzjwmBkklplllmtjuk:lQkjooljlq$kHkjmpwq9"
     "ljmrvpTkk.jljljok5k$lkptl@tjBl$*molllmpnmxuljumTyl2&m/l:k;kKk;tj1klljSlk@jTluouennDksl.mj4k:5kn3kz_rwl;vCkw4"
     "k$Imll%ojqjmlJnIk1z<BNkl7mj7l;FvoGlkFexmls=kakk3pjnjoj*nojdkk6k!-!xj_q,v0km3kw]jNkwwjsk1kl6kjllmkpklj|npkCoq"
     "lkN0tjIzy!yT&j2ojFmn6]llkpm{lojVmkYvmLkn3qkZkmQkt5kmXll9kx|jmkum1ktrjHkl]w!k0kjwl4kwsmlk3luqjmjNmu(mBkklpmkm"
     "ltjukmpnnNkrljmjlmlnljykck!*jbk$Bopmr.kckzHlvClxWoxLoolkmmljlk7mpmpnj/s{plmsjtt2ky1sqlqck&lwXlonjlklpljMknlk"
     "lnXqmtklj4kpnn*jeSljqxZTo!MAknFkpE)jl9krmbkjvk8VskQEl0km(3vnnosqmp;mEml0~9ko4ksjyj)nlxB:plzmplklnBljQmpGrjHk"
     "mEumUokHzpKlp7GVrEo"},
    {"common zyyy ",
     "jJk-o-1klxln*j<j0t^pnm$Rljtjqjlj8xjqjyjnj=jMmjMujelkR-j1smLpjZ=lRkkOnkljF-jxjrmlollmj9!umfkltntlx#<Jk]llmol,"
     "lz|loZx)t(R%Wogwm;lElIu3lhr%ljl*zqom2lknj1lkDmy=]tj4kIk<Zk3kjikWmNBmIkFBu=DllVmsKojQmjarjykMFtkTns)>l#lmDmjl"
     ";-o-tuj1kkKkplpunYolo~nrakv7k~4o,5L)mIgkOoqUsMmPlGkKou^mGknzskr/oFkYn$w$wfkt*1mdklPklkmjmkmmluljlplJklmmqlpl"
     "-lmlnljnplOqmLpm4kEQlMkWkFkWy}o9lwxmxlxl[ucmCk+lkx}orrkyoKmc&oznvnSlo4lquojzuoAkssq_s/muokIkOqwwmvnspAkrxmtq"
     "rrBmlBl9dSrj;5l"},
    {"connectorpunctuation pc ", "5ljF1nk%j92.k+lFoj"},
    {"copt coptic qaac ", "4(wZ5oPlpp"},
    {"cpmn cyprominoan ", "gG^8l"},
    {"cprt cypriot ", "dG=omjl}lknjmj"},
    {"cs surrogate ", "aD-M0k"},
    {"cuneiform xsux ", "II[L%DlKllnvFn"},
    {"currencysymbol sc ", "[jalmh-jYlj4uk4ukrjLojdojgvjU9kje4k<U5!jfbtjJljKmjenknkc1nm1U*j6Akj"},
    {"cyrillic cyrl ", "Y(glmXmTgltQmjWkjF3l;59y5l53ukWP.Gk>j"},
    {"dash ", "0kjN:j7kj5akje(jX0koHkj`jzjVrjHNkjmj<koj/jgsj%jMljKi+k^jujZmjaakj4qj"},
    {"dashpunctuation pd ", "0kjN:j7kj5akje(jX0koVYkjmj<koj/jgsj%jMljKi+k^jujZmjaakj4qj"},
    {"decimalnumber digit nd ",
     "3ks0@s0msJns8ssTlsTlsTlsTlsTlsTlsTlsTlsTls7lsTlsQks9psQksI{s_sVpsdlsWmsqs3nsgks0msqsaI!s4ys_sJns)sgks2ssVMts"
     "K;sN3ksqsW!sdlsGksAms9psSqsTlsFrsDlsq$WksIssDlsXxsgksMosQksIssPErs37ksgks0mseus43vsSGk4kT7ksIss8usNosi#sYFls"},
    {"defaultignorablecodepoint di ", "cmjixjgyj3Jkk0[kfknJ0kn-n5kyL6lj0d+yFojQmjZkrBc)mISlqgAYr01l"},
    {"dep deprecated ", "EqjH/jD6kjljK1kkf4koNykhShsj"},
    {"deseret dsrt indeseret ", "5d<Yk"},
    {"deva devanagari ", "96kZkoxm+V6%;PIxs"},
    {"dia diacritic ",
     "4ljljRkjqjojmk9uNmlqpo#kojtkTonUnjBkzl,ljlklj0mqok0mkoknlNk,2ltEkt@kblq|s!-Hkj!jnm/jUkj!jLlj!jLlj!j3klGkj!jr"
     "jUljLlj!jLlj!jKlk!jZljMljwoljIljxnVkk.jljljokMkllkIkjNljlk{kon,pljukVyl4&k;jEmttjXqlNpj&qmj4kxmtFljzj_rAkkEk"
     "jvkMkkKkock*ojqjml6kHk0lu^tfsjllvlxlxlxkSSkl3qjCuoGlm6lj7cxjwklj/kckky=DllKlkwj^jHmj.!Dkm]j6ljwj]jFmlLkm7kjB"
     "lntldlkN0tj5!y1pjlj3kj1kkNkj0!jE,ol{lr8xlojVmkWvo_j-nerlQkt5kmDnj|jSkkVlkIkjWkjtlFlkimkakk!j+pnn0lllkxk6ljnj"
     "YlkRokbljTlkQlj0pkYokojMmjdkj$jbkjHsjYojlkbkjLsk*j2Tlx7UojMAknFkpPvk7vzakk34rmlplkIfm0km(5vlnosqmp;mPbkGkFnp"
     "GrjHkm2!kHzpKllll"},
    {"diak divesakuru ", "QN@pmjmqlkl/lkmuts"},
    {"dogr dogra ", "eH@Ek"},
    {"dupl duployan ", "d5BkGlpvnrrsmm"},
    {"ebase emojimodifierbase ",
     "banjenj!mP9DkjGklmjmlSlkmt(#njolllrjlj+jMnkoj(jokemlnndkj!ltjvjavjmjsqqjtsmlCkjHkklklj#llv5ol}r"},
    {"ecomp emojicomponent ", "@jqjps31njYnjAh-j8b:+DunH<mb7Tr5l"},
    {"egyp egyptianhieroglyphs ", "JJ^T*uYhk"},
    {"elba elbasan ", "ai<_"},
    {"elym elymaic ", "UG>("},
    {"emod emojimodifier ", "F9Ikn"},
    {"emoji ",
     "@jqjpsMljojNimjwjbnj)j1lozk8rkwjWmj,tolKnj7okujtjEkmlntjmjmkmjojmjlkmjnjnkslpjljpuvkmjlklj$jmk$oljlknkpjmkok"
     "vkpkmjpkljlk&kpolmmjojmjmoljmjljljqjnjqjukzjmjojljolljvk4kltjyjyjDrkEtl%k7kjojS-jwjHwjljgDBkjNnjQmkwkyjmsVk+"
     "lk*j&jmr(kem=mLlmkllmbkmllbolHkvol)rkmqwjmmmjokxkmjsktjplwlslmjljojqjnjqek4kOkpqmlosnjlknjms3ouojEp1klsl4nNl"
     "vnspAkrxmtqr"},
    {"emojipresentation epres ",
     "VJnkQnmnjmjRuk(k6ku~j%jxjsk#kpksjpj(jrkljojmjrjok/j[jljolljHkl+jyj5$k7kjojCACkjNnjBnjmsVk+lj+j&jmnll(kem<wrl"
     "Okl&w|onwznjnPkljl6nmHkxml)$j-kxjgkdk4kOkqjnlmlomvkrr3ouojEp1klsl4nNlvnspAkrxmtqr"},
    {"enclosingmark me ", "Z+kFaljb>mllXdzl"},
    {"ethi ethiopic ", "IClRklmmpljlmm`lmm<lmmpljlmmxlBklmmLkm;n+GCm(tplplplplplplplpeayomomotplpT1`plmlklx"},
    {"ext extender ",
     "3njgukO$jbsj1xj3mj0ljXzjcljW7kjCkjRwjdrjOkj7Llj~nElk4lli1xjg=jI&j)j3mjJlj(kSUtje0kki<j.joj9-jOpjRlk4ulH-je8t"
     "kB,kljbExkW,jh#l"},
    {"extendedpictographic extpict ",
     "YmjojNimjwjbnj)j1lozk8rkwj6ljQkj,tolKnj7okujtjEkmlolulNluRlmtljljqjnjqjukzjmjojljolljvn1kltjyjyjDrkEtl%k7kjo"
     "jS-jwjHwjljcDBkUoxl<jGkowkyjms$Bk.xuj&jmrlmtSsp2qseo4kblRlufk|wmCkquo{q;akw1klslZsWoV("},
    {"finalpunctuation pf ", "7njKhmjnj/jJXkjljojmjzjnj"},
    {"gara garay ", "X1>]n.sk"},
    {"geor georgian ", "Q4l]ljpjm|lmaKk|mlL2l]ljpj"},
    {"glag glagolitic ", "EPo5lB3Akplzmplkln"},
    {"gong gunjalagondi ", "L3[olkl[lklors"},
    {"gonm masaramgondi ", "F1[plkl}njlklrss"},
    {"goth gothic ", "MY<,"},
    {"gran grantha ", "KY>mlqmkm&lplklnmrmkmlmjqjppmpnn"},
    {"graph ",
     "=3l@6zmoopljl$larl]m4kmll9ks,ooviolEkmAlyDkm3kmxl-mjltp:lkpBolqmkm&lpljnmmrmkmmsjoklnm*mllookm&lplklklkmjlno"
     "kmlnjrmljrzullrlll&lplklnmsllllmjzmmurplllqmkm&lplklnmrmkmlrloklnm!uklonllmnkljlknknlnuonnllmmjqjy%pvlll(lym"
     "rlllmrkllmjmmmsr&lll(lslnmrlllmrkqklmmsllwvlll5klllooym+lll!n)lrljmpnjooljlqqsmlwCko.^kljlnl)ljl(mnljlplsmm="
     "Qkl@o^l@lxlv^HnljpjmGrlmmpljlmm`lmm<lmmpljlmmxlBklmmLkm;n+qekmom9xl-nhkr&t)t$wvlllkw3lmsqsq+qhkr|pOku:luouoj"
     "n{mnv}o+qtnGkmJkl.mtqsqwm:5kVklUmsEknxnGkp|mts|pcumom]momqljljljl:m7klxlwmol#mllrw.mnl1klnlum,lvn<z<z4moZx)t"
     "(B`m;lXqp~ljpjmAkrky)tplplplplplplplplZl@+lhkwXn-ylHklekmClp|l3llekt2klgKxn9ktWq&3nsPnmkljlq(DknsqAksOksuqPl"
     "v/nWklto<l9ktwmsmCl+-uomomotplplEkoZlmsqBNow(o3kS0kFFmmFl_pwnp+lnljlklklYl!dsm8krj={q5kl#lmonlilmjl9nnomomom"
     "lnplpunmul+l#lklxmw@Wlplo~ngklvnj3k0kfl.n3kz-o@t/p|p/l[ow}Mmmsq@o@o_s6kvulxlplkltlxlplkn6kwept&uq+ol{lrPkomj"
     "l}lknjm(lQksr4k#lkp<n,pjKkAko$m4klkpqlll.mlosrrrIk=^out8kn.m,p+rmwpakRkBk5kx5kr0kssq]n.skTn:l{llmk!lBk}s{)+_"
     "-&(tWko@tMkujm*rsq7kl!s^t5ll$v!l1kIkpljlmlxltqDkpsqmlqmkm&lplklnlsmkmlmjqjppmpnnvsljmjl]lsljmjlmlslksk:1lln;"
     "QkssWm8km]@Nkvsqv%Ckqsq$/,mxo(6nEkBlbkwqmjmqlkl/lkmutsQkqm0kmt.QksbkxRkrs3n=ysqrl~lwu.n;m&lwTkplkl}njlklrssq"
     "olkl[lklorsfp*rzl`n.fkjz4kxM%DlKllnvFnRDk8lxT*uYhkpgv2HmCkP^Svr:lsoZklsq/mouOkuslpl%p#SsCkJn0lClTkoBkrzKknvk"
     "yF1msM-|sQInmlplklKpzj:lmjymsZrE6kGlpvnrrsmqIgkOoqUsWk0km(tPlGkKou^mDn(OkXl$w$wfkt*1mdklPklkmjmkmmluljlplJkl"
     "mmqlpl-lmlnljnplOqmLpmQyznlxP*:qoYnplzmplklnpGk>jNl~nwmsok6q:#CkpjFt{Zn|ojVtplmlklxlGnmy|UkosokL!MkWkFkFnml,"
     "lkljmjlslmljljqjojljljlllkljmjljljljljlkljmmlplmlmljlslzpllnlz8kk1p}o9lwxmxlxl[ucmCk.x}orrkyoKmc&oznvnSlo4lq"
     "uojzuoAkssq_s/muokIkOqwwmvnspAkrxmtqrrBmlBlf(E4&=D2lqfnm1cly2Vmzawb9k1vM=XJlp63lgLaqj;5ldlEoG5<DG<mDG<"},
    {"graphemebase grbase ",
     "<4l>vl8wNlqmoopljl$lhnrUml]m4kml2kjljmjmjt,oo#svjl0k(ylAlsjqkmjo;mjl/:hkvjy|tpn)ojtjnjrxl*pjltp:#{Dk9kljlmsm"
     "llrsm.lklqmkm&lpljnmnjlkqkmkljxkllo)pjlookm&lplklklkol+mljrsmlljwjlrlll&lplklnnmsjlknjzkourjsklqmkm&lplklnnj"
     "mjqkmkzkllo!vjlonllmnkljlknknlnupjlknlllnj(%qllqlll(lynjnm%lmjmkosrsltlll(lslnnkmjlk+klkosllytlll`mjlkpllllk"
     "ollso+mkl!n)lrljmptkqprsmlw2klkvqsv^kljlnl)ljlslktjmnljtsmm=)m,ljljlwl@$jpjmn5kqlolv^~ojqjmkm*mmnyovlkmolxl_"
     "ljpjmGrlmmpljlmm`lmm<lmmpljlmmxlBklmmLkp.n+qekmomcxnhkr!x#nkt!yvllz6kmjrqlkvrnsqsqtpsqhkrnm=ljpOku:ommloklor"
     "jn{mnv}o+qtnBkmknAkljtjlksoxsqsqwgk2kumnql.tum;okqAkljmlljx2kskpxnGkp|mtvjxjrmlollmjpBnKk7pmom]momqljljljl:m"
     "7klxlwmol#mllrltp)r3k!km,lvn<Jk4moZx)t(B`m;lSqnkp~ljpjmAkrkz(tplplplplplplplp>3l@+lhkwXn-CkqylekoAlp|l3llekt"
     "2klgKxn9ktWq&1koju;mYkmosPnmkljlq(ylllml*mnosqAksMkuu+vl]s*vjw/q2klkokmklvltopl*l`qkmkvllqljmsm;l5kljnkmnmjl"
     "j+zmqvomomotplplEkoQllklmnsqBNow(o3kc7n5rmFl_pwnpjl)lnljlklklYl!dsm8krj=y!s)>l#lmonliloLmm:nomomomlnplpxkmul"
     "+l#lklxmw@Wlplo~ngklvnj3k~gl.n3k!,o@t/p]u/l[ow}Mmmsq@o@o_s6kvulxlplkltlxlplkn6kwept&uq+ol{lrPkomjl}lknjm(lQk"
     "sr4k#lkp<n,pjKkAko$m1kzmlll.urrrrIk=[qut8kn.m,p+rmwpakRkBk5kx5kr{wsq]s)skTn:l{njmk!lFk_s&vr)!om_-&(tjl8kzpo/"
     "lkmjw3kokmklmy*rst@pjt!s>llv6ktjlqoklyl$v!l-nkoolkJkpljlmlxltq1kllxssklqmkm&lplklnnjljlmmkmknjwp/sljmjl]ljlk"
     "zjlknjlllk`Aksknjl%ljll;2klkqjlkljmjmmssWm1klkqmmjm,]5kskljmmvsqv%|ljlkskqsq$/,njlkojt(6n1ktjmjBlbkwqmjmqlkl"
     ")lnlkqmlltsQkqm{smlm.ju_qkoqtjqkn0kxjmrxRkrs3n=ysqrl]yjlou.n;,jrjmjVkplkl](jtsqolkl[okljljrsfp#mmtxl@skn(gkj"
     "z4kxM%DlKllnvFnRDk8lxa)#o,Yhkpgv2Hm/wlnsP^Svr:lsoZklsq/rju2krxuslpl%p#SsCkJn0lClTkpAkvvKkm/F1msM-|sQInmlplkl"
     "Kpzj:lmjymsZrE6kGlpvnrrsmjmjMgkOoqUsMmPlGkKou^mEkpl)kr/oFk(KknjXl$w$wfkt*1mdklPklkmjmkmmluljlplJklmmqlpl-lml"
     "nljnplOqmLpmLvBkm6kqlwlpG+:qoboGkCm~upmsok6q/$}ospjFt-osZn/mtojVtplmlklxlGnmr4kMkrjosokL!MkWkFkFnml,lkljmjls"
     "lmljljqjojljljlllkljmjljljljljlkljmmlplmlmljlslzpllnlz8kk1p}o9lwxmxlxl[ucmCk.x}orrkyoKmc&oznvnSlo4lquojzuoAk"
     "ssq_s/muokIkOqwwmvnspAkrxmtqrrBmlBlf(E4&=D2lqfnm1cly2Vmzawb9k1vM=XJlp63l"},
    {"graphemeextend grext ",
     "3!Ll6ppdo~ljlklkljSkt4k%!jClpmomklm[j;,2ltEkrtj+mlrllln~lFkr})l;Bkjljoqojnpuk:jEkjljmmsjtjuk-jmkDkjokokmlnj;"
     "knjvkDkjonlkoj&k)oljEkjlklmsjrluk;jFkjljwjtj{jnjBkjllpllmrkvk:jEkjmkljnllmrkvk/kDkkljmmsjtjuk:jSkjojmlljsjbk"
     "jmpwq9ljmrvpTkk.jljljBkwlnlkptl@tjDlmlolkmk,kol!mxjmkqjzjTyl2&m/l:k;kKkklpsjmttj1klljSlk@jTlloktjqlenkmjEkjl"
     "pljljmqqsmj4k:5km4ksol_rwk=mmoCkjlknjlnCkqmkImllvlpojqjnkJnIkUujGn<BNkl7mj7l;FvoGlkFexmls=kakk3pjnjoj,kpjHmk"
     "-!xj_q,tlj0kl4kjmmmkmj]jNkomkmkwjsj3kj7kjllmkpklj}ksjEojmjojN0tjIzy!y7rkLwj2ojFmn6]llkpm{lojVmkYvmLkn3qkZkmQ"
     "kt5kmYljAkx|jmkul5kmmkrjHkl]nlqIkjwk8krljsmmj6llmmqjmjNmjnq(kDkkljljwjtjypnnNkjmoljmjllolljykfkqmllj*jbkjmol"
     "jmjlklkBojmmqklk.kfkqmjlkHljljmqCljljmmlnZorlkLojumojAmmmkoj=s{ommsjtoml2kvlk2sploljck&mplklkXlonjlklpljSkkn"
     "jljXqkvk8knpl*jeSljqxZTounlMAknFkpE)jJkmbkjvk8VskQEl0km(3vnnosqmp;mEml0~9ko4ksjyj)nlxB:plzmplklnBljQmpGrjHkm"
     "EumUokHzpKlp8BVr5ldlEo"},
    {"graphemelink grlink ",
     "f7kjcljcljcljcljcljcljcljKlk!jZljMljcljMnj1nki^k;jNmjOxj3ojClkQkkb9lj2Myj^jHmj8mjJljepjMojQfujD>j|jyjDkjWlk5"
     "mjRlj1nj9ljdllOljcljSojcljTljRlj0pjZokRmjdkj$jbkjHsjaokbkjLsk2Frj"},
    {"greek grek ", "P$mllmmljojljllljl$lHkyy48mn6knonekj6q&mom]momqljljljl:m7klxlwmol#mllrQpjLL!jJctXk#jJF,Ok"},
    {"gujarati gujr ", "YEkllrlll&lplklnmsllllmjzmmurp"},
    {"gukh gurungkhema ", "8S~Ck"},
    {"gurmukhi guru ", "fBkllookm&lplklklkmjlnokmlnjrmljrz"},
    {"han hani ", "Odo+lhkwXn3kjlj,rymK&LBmKkLGtFBu5rmFlaZxkwkO9#E4&=D2lqfnm1cly2Vmzawb9k1vM=XJlp63l"},
    {"hang hangul ", "W6lUoWamkXo3lOl:Lk:E1y.ExBNow(o3kO0o:nomomoml"},
    {"hanifirohingya rohg ", "E0>_ss"},
    {"hano hanunoo ", "Pfl%"},
    {"hatr hatran ", "cL=#lkpn"},
    {"hebr hebrew ", "U;9ks,ooVi:+lnljlklkls"},
    {"hex hexdigit ", "3ksro-oY8<sro-o"},
    {"hira hiragana ", "N4pekql1L3kGp$j:lh7rj"},
    {"hmng pahawhhmong ", "3e0kOkuslpl%p#"},
    {"hmnp nyiakengpuachuehmong ", "GaFk~nwmsok"},
    {"hung oldhungarian ", "Lg=5kx5kro"},
    {"hyphen ", "0kjcljU-j7FljX0kkZYkjKzjOh+jZmjhkj"},
    {"idc idcontinue ",
     "3ksr+ojl+3kjujljmjp(l:l7touynrjlj#Qllkmmljqnljl$lbkl3mlnmUml]mjq`s~ljlklkljs,om:tpSkoBllqmsl#mj!DkmAly8kojmj"
     "m0k$-otp)losTklclmsl#lqmkm&lpljnmmrmkmmsjoklnmuujljmllookm&lplklklkmjlnokmlnjrmljryvllrlll&lplklnmsllllmjzmm"
     "stplllqmkm&lplklnmrmkmlrloklnmslj!klonllmnkljlknknlnuonnllmmjqjys!vlll(lymrlllmrkllmjmmms!mlqlll(lslnmrlllmr"
     "kqklmmsllwvlll5klllnpmrnmsuolll!n)lrljmpnjooljlqqsmkxCkpxls`kljlnl)ljl(mnljlplsmm=j*kqsvjljljosl@o$l!l@tjDkS"
     "kqWkm]ljpjm|lHqlmmpljlmm`lmm<lmmpljlmmxlBklmmLkmltryy!ekmonYwmzl+pTkntr&t&v$wvlllkwcknjokms>lltqhkr|pOku:luo"
     "uu_mnv}o+qt^-oHkl.mtqsxjswly5kVkns#rwPlwAkssn3kmtp|ml!ll^pcumom]momqljljljl:m7klpljnllpnmmoovpllpzk5kk%j/jxj"
     "!v7kvojnu#jojmsljmoqjljljlymmpnoj#`PEk3oqrw]ljpjmAkrjz)tplplplplplplplpl;Nul,xlnmnoekmpl4lp|l3l#;4kyIuLBmKkG"
     "gtNk0kmhon-&2koslOl^rmClmLkmkljlq(8koj%6kwOkusq)njl3km@w.nJkytq:l9ktwmsq(nRk+lmymnuomomotplpl|lwqWllkmsqBNow"
     "(o3kc7n5rmFl_pwnpulvlnljlklklHl>2r$Ikm8k{uoy!ynk+l=nlil%sr+ojl+uiknomomoml[ul+l#lklxmw@WlPk7k2mjfl.n3kzj<;x/"
     "p|p/m@oqln}Mmmsq@o@o_s6kwtlxlplkltlxlplkn6kwept&uq+ol{lrPkomjl}lknjm(u(t:Lk#lku&u+QkAkqkKkmlkpqlll.mloj=.n.["
     "ql/,8ku&u#x!LlRkBk5kx5kx_ssq]nnl(Qo{lknk!lBk<ujs<<&}%.(tPk<ytEkrjx*rsq7klsoms@mjtNkomlvlj[!l[qmIkpljlmlxlsrD"
     "kpsqmlqmkm&lplklnlsmkmlmjqjppmpnnvsljmjl]lsljmjlmlqxk:Tkpsom;OkljssWm8kmr*o@Jknjvs_Bkrsq$/,mxosqp6nDkClSk(qm"
     "jmqlkl/lkmrwsQkqm0kmqlk.HksjsSknj$RkKn<zsqrl~lrzs+/m&lwTkplkl}njlklrssqolkl[lklorsfp(tzl`nnxtfkjZkL%DlKl#FnR"
     "Dk6lza)!&uYhkpgv2HmCkP^Svr:lsqXklsq/mnv9ktmwst%p#Ss~nsJnIkdlTkoBkrzKkklkvkyF1msM-|sQInmlplklKpzj:lmjymsZrE6k"
     "Glpvnrrsnkc2lsOu0km(3vnnosqmp;mEmldsdklPklkmjmkmmluljlplJklmmqlpl-lmlnljnplOqm*l*l:l*l:l*l:l*l:l*lqm4kIu9ko4"
     "ksjyj)nlxP*:qoYnplzmplklnpGk>jNl~nwmsoj7q:#CkLt{Zn|atplmlklxlGnvp|UkosL,ml,lkljmjlslmljljqjojljljlllkljmjljl"
     "jljljlkljmmlplmlmljlslzpllnlz6Uksf(E4&=D2lqfnm1cly2Vmzawb9k1vM=XJlp63lRRaqEo"},
};
const size_t kNumUnicodeSets2 = 69;

}  // namespace kintsugi::text
// clang-format on
