# Words of programs that were renamed since the version that is compared with: s/old/new/
